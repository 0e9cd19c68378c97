/* Learns from a stream and says how it goes: online STREAM MODEL; "-" is standard input. */
#include <espalier.h>
#include <inttypes.h>
#include <stdio.h>

/* Called after every 200th example; a status other than ESP_OK would end the run. */
static esp_status tell(void *user, const esp_online *online, esp_error *error)
{
    esp_online_stats stats;
    (void)user;
    (void)error;
    esp_online_measure(online, &stats);
    printf("%" PRIu64 " examples, %" PRIu64 " updates, %zu classes, accuracy %.3f\n", stats.examples, stats.updates,
           stats.classes, stats.accuracy);
    return ESP_OK;
}

int main(int argc, char **argv)
{
    esp_kernel *kernel = NULL;
    esp_online *online = NULL;
    esp_model *model = NULL;
    esp_error error;
    const esp_setting settings[] = {{"average", "1"}};
    if (argc != 3) return 2;

    esp_status status = esp_kernel_parse("norm(sst(tree, lambda=0.4))", &kernel, &error);
    if (status == ESP_OK) status = esp_online_new("perceptron", kernel, settings, 1, &online, &error);
    if (status == ESP_OK) {
        esp_online_watch(online, 200, tell, NULL);
        status = esp_online_read(online, argv[1], NULL, NULL, &error);
    }
    if (status == ESP_OK) status = esp_online_model(online, &model, &error);
    if (status == ESP_OK) status = esp_model_write(model, argv[2], &error);
    if (status != ESP_OK) fprintf(stderr, "%s\n", error.message);

    esp_model_free(model);
    esp_online_free(online);
    esp_kernel_free(kernel);
    return status != ESP_OK;
}
