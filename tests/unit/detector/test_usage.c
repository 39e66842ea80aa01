#include "cmocka_all.h"
#include "detector/usage.h"
#include "lib/process.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The folder that a machine made of files is in, and what measures it. */
static char root[64];
static struct usage_meter meter;
static const char NO_GPUS[] = "libnvidia-ml-not-there.so.1";

static int set_up(void **state)
{
    process_make_folder(root, sizeof(root));
    return 0;
}

static int tear_down(void **state)
{
    process_remove_folder(root);
    return 0;
}

/* Writes root/path with all its folders. */
static void put(const char *path, const char *text)
{
    char full[512];

    (void)snprintf(full, sizeof(full), "%s%s", root, path);
    for (char *slash = full + strlen(root) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        (void)mkdir(full, 0700);
        *slash = '/';
    }
    process_write_file(full, text, strlen(text));
}

static struct usage measure(int64_t at_s)
{
    struct usage usage = {0};
    usage_measure(&meter, (instant){at_s * 1000000000}, &usage);
    return usage;
}

static void version_2_counts_the_cgroup_against_its_smallest_limit(void **state)
{
    put("/proc/self/cgroup", "10::/other\n0::/pod/worker\n");
    put("/proc/meminfo", "MemTotal:       16000000 kB\n");
    put("/sys/fs/cgroup/pod/worker/memory.current", "250000000\n");
    put("/sys/fs/cgroup/pod/worker/memory.max", "max\n");
    put("/sys/fs/cgroup/pod/memory.max", "1000000000\n");
    put("/sys/fs/cgroup/pod/worker/cpu.max", "50000 100000\n");
    put("/sys/fs/cgroup/pod/cpu.max", "max 100000\n");
    put("/sys/fs/cgroup/pod/worker/cpu.stat", "usage_usec 1000000\nuser_usec 1\n");
    usage_meter_init(&meter, root, NO_GPUS);
    assert_string_equal(usage_source(&meter), "cgroup v2");
    assert_float_equal(usage_cpus(&meter), 0.5, 0.01);
    assert_float_equal(measure(10).cpu, 0, 0.01);
    put("/sys/fs/cgroup/pod/worker/cpu.stat", "usage_usec 1250000\n");
    assert_float_equal(measure(11).cpu, 50, 0.01); /* a quarter of a second of half a core */
    assert_float_equal(measure(12).memory, 25, 0.01);
}

static void a_container_sees_its_cgroup_at_the_mount(void **state)
{
    put("/proc/self/cgroup", "0::/../outside\n");
    put("/sys/fs/cgroup/memory.current", "50\n");
    put("/sys/fs/cgroup/memory.max", "200\n");
    usage_meter_init(&meter, root, NO_GPUS);
    assert_string_equal(usage_source(&meter), "cgroup v2");
    assert_float_equal(measure(1).memory, 25, 0.01);
}

static void without_a_cgroup_it_is_the_process_against_the_machine(void **state)
{
    put("/proc/self/cgroup", "4:memory:/docker/1\n0::/\n"); /* as where version 1 is in use */
    put("/sys/fs/cgroup/memory/docker/1/memory.usage_in_bytes", "30\n");
    put("/proc/self/status", "Name:\tx\nVmRSS:\t     500 kB\n");
    put("/proc/meminfo", "MemTotal:       10000 kB\n");
    usage_meter_init(&meter, root, NO_GPUS);
    assert_string_equal(usage_source(&meter), "process");
    assert_true(usage_cpus(&meter) >= 1);
    assert_float_equal(measure(1).memory, 5, 0.01);
}

/* Two children of two threads; the name of one looks like what follows a name. */
static void without_a_cgroup_living_children_count(void **state)
{
    double cpu;

    put("/proc/self/status", "VmRSS:\t     500 kB\n");
    put("/proc/meminfo", "MemTotal:       10000 kB\n");
    put("/proc/self/task/7/children", "71 ");
    put("/proc/self/task/8/children", "");
    put("/proc/self/task/9/children", "72 73 ");
    put("/proc/71/status", "VmRSS:\t 900 kB\nRssAnon:\t     300 kB\n");
    put("/proc/72/status", "RssAnon:\t     200 kB\n");
    put("/proc/71/stat", "71 (baton-camera) S 1 7 7 0 -1 4194304 1 0 0 0 0 0 0 0 20 0\n");
    put("/proc/72/stat", "72 (a ) S 9 9 (b) S 1 7 7 0 -1 4194304 1 0 0 0 5 5 0 0 20 0\n");
    usage_meter_init(&meter, root, NO_GPUS);
    assert_float_equal(measure(1).memory, 10, 0.01);
    put("/proc/71/stat", "71 (baton-camera) S 1 7 7 0 -1 4194304 1 0 0 0 700 300 5000 0 20\n");
    cpu = measure(101).cpu; /* of 100 s; our own are next to nothing */
    assert_true(fabs(cpu * usage_cpus(&meter) - 1000.0 / (double)sysconf(_SC_CLK_TCK)) < 0.5);
}

static void nonsense_counts_as_nothing(void **state)
{
    put("/proc/self/cgroup", "0:\n::\n:::\n0::/a\n");
    put("/sys/fs/cgroup/memory.current", "lots\n");
    put("/sys/fs/cgroup/cpu.max", "0 0\n");
    put("/sys/fs/cgroup/cpu.stat", "usage_usec\n");
    usage_meter_init(&meter, root, NO_GPUS);
    (void)measure(1);
    assert_float_equal(measure(2).cpu, 0, 0.01);
    assert_float_equal(measure(3).memory, 0, 0.01);
    assert_float_equal(measure(3).cpu, 0, 0.01); /* no time has passed */
}

static void this_machine_is_measured(void **state)
{
    struct usage usage;

    usage_meter_init(&meter, "", NO_GPUS);
    usage_measure(&meter, clock_now(), &usage);
    usage_measure(&meter, clock_now(), &usage);
    assert_true(usage.cpu >= 0 && usage.cpu <= 100);
    assert_true(usage.memory > 0 && usage.memory <= 100);
}

static void the_mean_of_the_gpus_is_measured(void **state)
{
    struct usage usage;

    usage_meter_init(&meter, root, FAKE_NVML);
    assert_int_equal(meter.gpus.count, 2);
    usage = measure(1);
    assert_true(usage.gpu == 50);
    assert_true(usage.gpu_memory == 12.5);
}

/* Nor is one with a library that lacks a function. */
static void a_machine_without_a_gpu_shows_zero(void **state)
{
    const char *const libraries[] = {NO_GPUS, "libm.so.6"};

    for (int i = 0; i < 2; i++) {
        struct usage usage = {1, 2, 3, 4};
        usage_meter_init(&meter, root, libraries[i]);
        assert_int_equal(meter.gpus.count, 0);
        usage_measure(&meter, clock_now(), &usage);
        assert_true(usage.gpu == 0 && usage.gpu_memory == 0);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(version_2_counts_the_cgroup_against_its_smallest_limit),
        TEST(a_container_sees_its_cgroup_at_the_mount),
        TEST(without_a_cgroup_it_is_the_process_against_the_machine),
        TEST(without_a_cgroup_living_children_count),
        TEST(nonsense_counts_as_nothing),
        TEST(this_machine_is_measured),
        TEST(the_mean_of_the_gpus_is_measured),
        TEST(a_machine_without_a_gpu_shows_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
