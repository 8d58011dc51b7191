#!/bin/sh
# Build ggml with ACS under its CUDA backend, and the benchmark: build.sh GGML_SOURCE OUT
# GGML_SOURCE: a checkout of ggml at the revision that README.md names; it is copied, not changed. OUT/ggml-bench is the
# result. CUDA, ARCH, JOBS and ACS (a build folder with libacs.a; built if it has none) can be set from outside.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
source=$(cd "$1" && pwd)
mkdir -p "$2"
out=$(cd "$2" && pwd)
CUDA=${CUDA:-/usr/local/cuda}
ARCH=${ARCH:-90-real}
JOBS=${JOBS:-$(nproc)}
ACS=${ACS:-$out/acs}
MMQ="q4_0 q8_0 q4_k"   # types and widths of matrix products whose kernels are kept
MMF="1 2 4 8 16"

# ---- sources: a copy with the patch, without the kernels that are left out
if [ ! -f "$out/ggml/patched" ]; then
    mkdir -p "$out/ggml"
    (cd "$source" && tar cf - CMakeLists.txt cmake include src ggml.pc.in) | tar xf - -C "$out/ggml"
    patch -d "$out/ggml" -p1 <"$here/acs.patch"
    touch "$out/ggml/patched"
fi
kernels=$out/ggml/src/ggml-cuda
inc=$out/left_out.inc.new
: >"$inc"
for file in "$kernels"/template-instances/*.cu; do
    name=$(basename "$file" .cu)
    kept=
    for type in $MMQ; do [ "$name" != "mmq-instance-$type" ] || kept=1; done
    for columns in $MMF; do [ "$name" != "mmf-instance-ncols_$columns" ] || kept=1; done
    [ -z "$kept" ] || continue
    case $name in
    mmq-*) echo "MMQ(GGML_TYPE_$(echo "${name#mmq-instance-}" | tr a-z A-Z))" >>"$inc" ;;
    mmf-*) echo "MMF_ALL(${name#mmf-instance-ncols_})" >>"$inc" ;;
    esac
    [ ! -s "$file" ] || : >"$file"
done
cmp -s "$inc" "$kernels/left_out.inc" || cp "$inc" "$kernels/left_out.inc"
for file in fattn.cu fattn-tile.cu; do [ ! -s "$kernels/$file" ] || : >"$kernels/$file"; done
cmp -s "$here/left_out.cu" "$kernels/left_out.cu" || cp "$here/left_out.cu" "$kernels/left_out.cu"

# ---- ggml
PATH=$CUDA/bin:$PATH
cmake -S "$out/ggml" -B "$out/build" -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF -DGGML_BACKEND_DL=OFF \
    -DGGML_NATIVE=OFF -DGGML_OPENMP=OFF -DGGML_CCACHE=OFF -DGGML_LLAMAFILE=OFF -DGGML_BUILD_TESTS=OFF \
    -DGGML_BUILD_EXAMPLES=OFF -DGGML_CUDA=ON -DGGML_CUDA_GRAPHS=ON -DGGML_CUDA_FA=OFF -DGGML_CUDA_NCCL=OFF \
    -DGGML_CUDA_NO_VMM=ON -DCMAKE_CUDA_ARCHITECTURES="$ARCH" -DCMAKE_CUDA_COMPILER="$CUDA/bin/nvcc" \
    -DCMAKE_CUDA_FLAGS="-I$here" -DCMAKE_CXX_FLAGS="-I$here" ${GENERATOR:+-G "$GENERATOR"} >"$out/cmake.log"
cmake --build "$out/build" -j"$JOBS" --target ggml

# ---- ACS
if [ ! -f "$ACS/libacs.a" ]; then
    cmake -S "$root" -B "$ACS" -DCMAKE_BUILD_TYPE=Release -DACS_TESTS=OFF -DACS_BENCH=OFF -DACS_SAMPLES=OFF >"$out/acs.log"
    cmake --build "$ACS" -j"$JOBS"
fi

# ---- the adapter and the benchmark
includes="-I$here -I$root/include -isystem $out/ggml/include -isystem $out/ggml/src -isystem $out/ggml/src/ggml-cuda -isystem $CUDA/include"
nvcc -x cu -std=c++17 -O2 -arch="sm_${ARCH%%-*}" -Xcompiler -Wall,-Wextra $includes -c "$here/acs_ggml.cpp" -o "$out/acs_ggml.o"
for file in bench scenes dry; do
    c++ -std=c++17 -O2 -g1 -Wall -Wextra $includes -c "$here/$file.cpp" -o "$out/$file.o"
done
libs=$(find "$out/build/src" -name 'libggml*.a')
c++ -o "$out/ggml-bench" "$out/bench.o" "$out/scenes.o" "$out/dry.o" "$out/acs_ggml.o" -Wl,--start-group $libs -Wl,--end-group "$ACS/libacs.a" \
    -L"$CUDA/lib64" -lcudart_static -lcublas -lrt -ldl -lpthread -static-libstdc++ -static-libgcc
