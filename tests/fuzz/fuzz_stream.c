/* Plain and compressed input whose format is recognised by content. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size <= 1024) fuzz_reader(data, size, ESP_FORMAT_AUTO); /* a small input may unpack to a large one */
    return 0;
}
