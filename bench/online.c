/* Measurements of online learning for bench/online.sh: one perceptron in its three forms on the same examples. Results
 * go to standard output as lines of TAB-separated fields.
 *
 *     forms DATA KERNEL REPEATS [dag|forest|plain]...
 *
 * Each round learns once in every form named, one after the other; times are medians, ratios medians within a round. */
#include "measure.h"

enum { FORMS = 3 };

static const char *const form_names[FORMS] = {"dag", "forest", "plain"};

typedef struct form {
    bool wanted;
    double seconds[MOST];
    esp_online_stats stats;
} form;

static double learn(const esp_kernel *kernel, const esp_dataset *data, const char *name, esp_online_stats *stats)
{
    esp_online *online;
    esp_error err;
    check(esp_online_new("perceptron", kernel, &(esp_setting){"form", name}, 1, &online, &err), &err);
    const double start = now();
    check(esp_online_learn(online, data, &one_thread, &err), &err);
    const double seconds = now() - start;
    esp_online_measure(online, stats);
    esp_online_free(online);
    return seconds;
}

/* seconds and MB of a form, and its ratio to the first form in the same round; dashes if it was not asked for. */
static void tell(const form *f, const form *first, int repeats)
{
    double ratio[MOST];
    if (!f->wanted) {
        printf("\t-\t-\t-");
        return;
    }
    for (int i = 0; i < repeats; i++) ratio[i] = f->seconds[i] / first->seconds[i];
    printf("\t%.3g\t%.1f\t%.3g", median(f->seconds, repeats), (double)f->stats.bytes / 1e6, median(ratio, repeats));
}

static int forms(char **argument)
{
    esp_dataset *data = load(argument[0], NULL);
    esp_kernel *kernel = parse(argument[1]);
    form f[FORMS] = {0};
    const int repeats = repeats_of(argument[2]);
    for (char **name = argument + 3; *name != NULL; name++)
        for (size_t i = 0; i < FORMS; i++) f[i].wanted = f[i].wanted || strcmp(*name, form_names[i]) == 0;
    for (int r = 0; r < repeats; r++)
        for (size_t i = 0; i < FORMS; i++)
            if (f[i].wanted) f[i].seconds[r] = learn(kernel, data, form_names[i], &f[i].stats);
    for (size_t i = 1; i < FORMS; i++) {
        if (!f[i].wanted || f[i].stats.updates == f[0].stats.updates) continue;
        fprintf(stderr, "bench: the forms dag and %s differ: %llu and %llu updates\n", form_names[i],
                (unsigned long long)f[0].stats.updates, (unsigned long long)f[i].stats.updates);
        return 1;
    }
    printf("%zu\t%llu\t%zu\t%zu", esp_dataset_count(data), (unsigned long long)f[0].stats.updates, f[0].stats.nodes,
           f[0].stats.vertices);
    for (size_t i = 0; i < FORMS; i++) tell(&f[i], &f[0], repeats);
    printf("\n");
    esp_dataset_free(data);
    esp_kernel_free(kernel);
    return 0;
}

int main(int count, char **argument)
{
    if (count > 5 && strcmp(argument[1], "forms") == 0) return forms(argument + 2);
    fprintf(stderr, "usage: see the head of bench/online.c\n");
    return 2;
}
