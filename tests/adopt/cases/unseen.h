/* A header that acs-adopt does not see: it follows includes in quotes only. */
#define SCAN(x, n) { unseen_scan(x, n); }
#define cublasCheck(x) { if ((x) != 0) return; }
int unseen_scan(float *x, int n);
template <class T> __global__ void unseen_kernel(T *x) { x[0] = 1; }
