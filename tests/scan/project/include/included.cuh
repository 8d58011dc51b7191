#define INCLUDED 7
