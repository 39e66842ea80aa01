#include "cmocka_all.h"
#include "detector/gpu.h"

static void the_mean_of_the_gpus_is_measured(void **state)
{
    struct gpu_meter *meter = gpu_meter_new(FAKE_NVML);
    struct usage usage = {1, 2, 3, 4};
    (void)state;

    assert_non_null(meter);
    assert_int_equal(gpu_count(meter), 2);
    gpu_measure(meter, &usage);
    assert_true(usage.cpu == 1 && usage.memory == 2);
    assert_true(usage.gpu == 50);
    assert_true(usage.gpu_memory == 12.5);
    gpu_meter_free(meter);
}

static void a_machine_without_a_gpu_shows_zero(void **state)
{
    struct usage usage = {1, 2, 3, 4};
    (void)state;

    assert_null(gpu_meter_new("libnvidia-ml-not-there.so.1"));
    gpu_measure(NULL, &usage);
    assert_true(usage.gpu == 0 && usage.gpu_memory == 0);
    gpu_meter_free(NULL);
}

static void a_library_that_lacks_a_function_is_none(void **state)
{
    (void)state;
    assert_null(gpu_meter_new("libm.so.6"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_mean_of_the_gpus_is_measured),
        cmocka_unit_test(a_machine_without_a_gpu_shows_zero),
        cmocka_unit_test(a_library_that_lacks_a_function_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
