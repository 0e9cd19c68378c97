/* SVM-light-TK and KeLP share a reader; bit 4 of the first byte picks one. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_reader(data, size, size > 0 && (data[0] & 4) != 0 ? ESP_FORMAT_KELP : ESP_FORMAT_SVMTK);
    return 0;
}
