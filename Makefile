# The front door; the build itself is in CMakeLists.txt and CMakePresets.json.
PREFIX ?= /usr/local
DESTDIR ?=
FUZZ_SECONDS ?= 60

all: build

help:
	@echo 'make            build build/espalier, build/libespalier.a and build/libespalier.so'
	@echo 'make demo       build, then run the main job on the data that ships inside'
	@echo 'make check      build and run the quick tests (80 seconds once all is built)'
	@echo 'make test       build and run all tests (ten minutes)'
	@echo 'make bench      build, then print the benchmark table'
	@echo 'make experiments  build, then run the experiments and write docs/results.md (40 minutes)'
	@echo 'make cuda       build build/libespalier-cuda.so, for Gaussian processes on NVIDIA GPUs (needs the CUDA toolkit)'
	@echo 'make mpi        build build/libespalier-mpi.so, for several processes and machines (needs MPI)'
	@echo 'make wheel      build the wheel for Python with the tool inside, and the source archive, in dist/'
	@echo 'make test-wheel build them, then install the wheel for every Python that is there and try it'
	@echo 'make deb        build Debian packages in dist/'
	@echo 'make test-deb   build them, then install them in a bare Debian and try them (as root)'
	@echo 'make fuzz       run each fuzzer for FUZZ_SECONDS (now $(FUZZ_SECONDS)) seconds'
	@echo 'make install    install below PREFIX (now $(PREFIX)); DESTDIR is put in front'
	@echo 'make clean      remove all that was built'
	@echo 'Debian packages that are missing are installed; ESPALIER_NO_INSTALL=1 forbids it.'

build:
	@scripts/dependencies.sh build
	@cmake --preset release >/dev/null
	@cmake --build --preset release

demo: build
	@examples/demo.sh

check:
	@scripts/dependencies.sh check
	@scripts/test quick

test:
	@scripts/dependencies.sh test
	@scripts/test

bench:
	@scripts/dependencies.sh bench
	@$(MAKE) --no-print-directory build
	@bench/run

experiments:
	@scripts/dependencies.sh experiments
	@$(MAKE) --no-print-directory build
	@experiments/run

cuda: build
	@scripts/cuda

mpi: build
	@command -v mpicc >/dev/null || scripts/dependencies.sh mpi
	@scripts/mpi

wheel:
	@scripts/dependencies.sh wheel
	@scripts/wheel

test-wheel: wheel
	@scripts/dependencies.sh check
	@tests/wheel/run

deb:
	@scripts/dependencies.sh deb
	@scripts/deb

test-deb: deb
	@scripts/dependencies.sh bare
	@tests/deb/run

fuzz:
	@scripts/dependencies.sh test
	@scripts/fuzz $(FUZZ_SECONDS)

install: build
	@DESTDIR='$(DESTDIR)' cmake --install build --prefix '$(PREFIX)'

clean:
	rm -rf build build-clang build-asan build-tsan build-debug build-fuzz build-python build-deb build-bare dist

.PHONY: all help build demo check test bench experiments cuda mpi wheel test-wheel deb test-deb fuzz install clean
