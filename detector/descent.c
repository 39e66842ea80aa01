#include "detector/descent.h"

#include "detector/proc_file.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { UTIME = 11 }; /* fields after the state, which is the first behind the name in brackets */

/* User and system time; the name before may have anything in it, brackets and spaces too. */
static uint64_t cpu_ns_of(const char *stat)
{
    const char *at = strrchr(stat, ')');
    uint64_t ticks = 0;
    long per_s = sysconf(_SC_CLK_TCK);

    for (int field = 0; at && field < UTIME + 1; field++) {
        at = strchr(at + 1, ' ');
    }
    for (int i = 0; at && i < 2; i++) {
        ticks += strtoull(at, NULL, 10);
        at = strchr(at + 1, ' ');
    }
    return per_s > 0 ? ticks * (1000000000U / (uint64_t)per_s) : 0;
}

static void add_child(struct descent *descent, const char *root, unsigned long pid)
{
    char path[PROC_PATH_MAX];
    char text[PROC_FILE_MAX];
    uint64_t kib;

    (void)snprintf(path, sizeof(path), "%s/proc/%lu/stat", root, pid);
    if (proc_read(path, text)) {
        descent->cpu_ns += cpu_ns_of(text);
    }
    (void)snprintf(path, sizeof(path), "%s/proc/%lu/status", root, pid);
    if (proc_read(path, text) && proc_number_after(text, "RssAnon:", &kib)) {
        descent->memory_bytes += kib * 1024;
    }
}

static void add_children_of(struct descent *descent, const char *root, const char *thread)
{
    char path[PROC_PATH_MAX];
    char text[PROC_FILE_MAX];

    (void)snprintf(path, sizeof(path), "%s/proc/self/task/%s/children", root, thread);
    if (!proc_read(path, text)) {
        return;
    }
    for (char *at = text, *end = NULL; isdigit((unsigned char)*at); at = end + (*end == ' ')) {
        add_child(descent, root, strtoul(at, &end, 10));
    }
}

struct descent descent_measure(const char *root)
{
    struct descent descent = {0};
    char path[PROC_PATH_MAX];
    const struct dirent *entry;
    DIR *threads;

    (void)snprintf(path, sizeof(path), "%s/proc/self/task", root);
    threads = opendir(path);
    while (threads && (entry = readdir(threads)) != NULL) {
        if (isdigit((unsigned char)entry->d_name[0])) {
            add_children_of(&descent, root, entry->d_name);
        }
    }
    if (threads) {
        (void)closedir(threads);
    }
    return descent;
}
