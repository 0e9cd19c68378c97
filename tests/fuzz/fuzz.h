/* What the fuzzers share. A broken promise of the library is an abort, which libFuzzer reports with its input. */
#ifndef FUZZ_H
#define FUZZ_H

#include <espalier.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Parses data[1..size) in this format; the bits of data[0] say how: 1 clean, 2 skip_bad. What can be read must
 * be describable, printable, writable as JSON Lines and readable again, with the same examples. */
void fuzz_reader(const uint8_t *data, size_t size, esp_format format);

/* A file in the scratch directory (the environment's FUZZ_SCRATCH, else /tmp). The text is static. */
const char *fuzz_file(const char *name);

/* Aborts with the sentence unless the promise was kept. */
void fuzz_require(bool kept, const char *promise, const esp_error *err);

/* Whether two files hold the same bytes. */
bool fuzz_same_file(const char *a, const char *b);

/* A file of sections, as models and indexes are, from bytes that may be anything: with this mark (8 bytes) and version,
 * the right length and the right checksum, as whoever means harm would do. To be freed; NULL if there is no header. */
enum { FUZZ_HEADER = 64 };
uint8_t *fuzz_signed(const uint8_t *data, size_t size, const char *mark, uint8_t version);

#endif
