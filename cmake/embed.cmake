# cmake -DIN=<file> -DOUT=<file.c> -DNAME=<symbol> -P embed.cmake: a C source that holds the bytes of a file, aligned to 8.
file(READ ${IN} bytes HEX)
string(LENGTH "${bytes}" digits)
math(EXPR pad "(16 - ${digits} % 16) % 16")
string(REPEAT "0" ${pad} zeros)
# Eight bytes to a number: a quarter of the text, and of the compiler's time, of one number each.
string(REGEX REPLACE "(..)(..)(..)(..)(..)(..)(..)(..)" "0x\\8\\7\\6\\5\\4\\3\\2\\1u,\n" words "${bytes}${zeros}")
file(WRITE ${OUT} "/* Generated from device code; do not edit. Little endian, as every host of CUDA is. */
#include <stdint.h>
extern const uint64_t ${NAME}[];
const uint64_t ${NAME}[] = {
${words}};
")
