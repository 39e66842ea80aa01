#include "detector/infer/library.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FOLDERS = 6 };

/* "" where there is none; the last one is the loader's own search. */
static void list_folders(char ret[FOLDERS][PATH_MAX])
{
    const char *home = getenv("HOME");
    char program[PATH_MAX];
    ssize_t bytes = readlink("/proc/self/exe", program, sizeof(program) - 1);
    char *slash;

    memset(ret, 0, sizeof(char[FOLDERS][PATH_MAX]));
    program[bytes > 0 ? bytes : 0] = '\0';
    slash = strrchr(program, '/');
    if (slash) {
        *slash = '\0';
        (void)snprintf(ret[0], PATH_MAX, "%s/../lib/", program);
        (void)snprintf(ret[1], PATH_MAX, "%s/../lib/baton/", program);
        (void)snprintf(ret[2], PATH_MAX, "%s/../../%s/baton/", program, BATON_LIBDIR_NAME);
    }
    (void)snprintf(ret[3], PATH_MAX, "%s/", BATON_LIBDIR);
    if (home && home[0] == '/') {
        (void)snprintf(ret[4], PATH_MAX, "%s/.local/lib/baton/", home);
    }
}

int library_open(void **ret, const char *const *names, const char *path, struct baton_error *reterr)
{
    char folders[FOLDERS][PATH_MAX];
    char whole[PATH_MAX + NAME_MAX];
    void *library = NULL;

    if (path) {
        library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!library) {
            return error_set(reterr, BATON_ENOENT, "%s", dlerror());
        }
        *ret = library;
        return 0;
    }
    list_folders(folders);
    for (int i = 0; i < FOLDERS && !library; i++) {
        bool is_system = i == FOLDERS - 1;
        for (size_t k = 0; names[k] && !library && (is_system || folders[i][0]); k++) {
            (void)snprintf(whole, sizeof(whole), "%s%s", folders[i], names[k]);
            if (is_system || access(whole, R_OK) == 0) {
                library = dlopen(whole, RTLD_NOW | RTLD_LOCAL);
            }
        }
    }
    if (!library) {
        return error_set(reterr, BATON_ENOENT, "%s: not found", names[0]);
    }
    *ret = library;
    return 0;
}
