#include "detector/infer/library.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int opencv_load(struct library **ret, const struct library_options *options,
                       struct baton_error *reterr)
{
    static const char *const names[] = {"libbaton-opencv.so", NULL};
    void *library;
    int code = library_find(&library, names, options->path, reterr);

    if (code) {
        (void)error_wrap(reterr, "OpenCV");
        return code;
    }
    *ret = dlsym(library, "baton_opencv");
    return *ret ? 0
                : error_set(reterr, BATON_ENOENT, "OpenCV: %s: is not Baton's",
                            options->path[0] ? options->path : names[0]);
}

int library_load(struct library **ret, const struct library_options *options,
                 struct baton_error *reterr)
{
    int code = BATON_ENOENT;

    if (options->kind != ENGINE_OPENCV) {
        code = onnx_load(ret, options, reterr);
    }
    if (code && options->kind != ENGINE_ONNXRUNTIME) {
        /* If neither is there, the error is that of the preferred one. */
        code = opencv_load(ret, options, options->kind == ENGINE_OPENCV ? reterr : NULL);
    }
    if (!code) {
        (*ret)->threads = options->threads ? options->threads : 1;
    }
    return code;
}

int library_find(void **ret, const char *const *names, const char *path, struct baton_error *reterr)
{
    const char *home = getenv("HOME");
    char program[PATH_MAX];
    ssize_t bytes = readlink("/proc/self/exe", program, sizeof(program) - 1);
    const char *const folders[][2] = {{program, "/../lib/"},
                                      {program, "/../lib/baton/"},
                                      {program, "/../../" BATON_LIBDIR_NAME "/baton/"},
                                      {BATON_LIBDIR, "/"},
                                      {home && home[0] == '/' ? home : "", "/.local/lib/baton/"},
                                      {"", ""}}; /* where the loader looks */
    char whole[2 * PATH_MAX];
    char *slash;
    void *library = path[0] ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;

    if (path[0] && !library) {
        return error_set(reterr, BATON_ENOENT, "%s", dlerror());
    }
    program[bytes > 0 ? bytes : 0] = '\0';
    slash = strrchr(program, '/');
    if (slash) {
        *slash = '\0';
    }
    for (size_t i = 0; !library && i < sizeof(folders) / sizeof(folders[0]); i++) {
        for (size_t k = 0; !library && names[k]; k++) {
            (void)snprintf(whole, sizeof(whole), "%s%s%s", folders[i][0], folders[i][1], names[k]);
            library = dlopen(whole, RTLD_NOW | RTLD_LOCAL);
        }
    }
    if (!library) {
        return error_set(reterr, BATON_ENOENT, "%s: not found", names[0]);
    }
    *ret = library;
    return 0;
}
