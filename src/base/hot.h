/* HOT marks a loop that is compiled for several vector widths; the machine's best is picked when the library loads. Its
 * name must be unique in the library although it must be static: compilers give the clones global names, and clang
 * gives what picks one a name that other files do not ask for. Left out under sanitizers, whose run time is not ready
 * yet when the choice is made. */
#ifndef ESPI_BASE_HOT_H
#define ESPI_BASE_HOT_H

#if defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer) || __has_feature(memory_sanitizer)
#define ESPI_SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ESPI_SANITIZED
#endif

#if defined(__x86_64__) && defined(__linux__) && !defined(ESPI_SANITIZED)
#define HOT __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define HOT
#endif

#endif
