#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_reader(data, size, ESP_FORMAT_PENN);
    return 0;
}
