/* The files of the page, which are part of the program: page/ of the source, as they are. */
#ifndef FLEET_PAGE_PAGE_H
#define FLEET_PAGE_PAGE_H

#include <stddef.h>

struct page_file {
    const char *path; /* of the URL: "/", "/page/main.js" */
    const char *type; /* of the content */
    const char *etag; /* quoted: a hash of the content */
    const unsigned char *data;
    size_t bytes;
};

/* Ends with a file without a path. */
extern const struct page_file page_files[];

/* NULL: there is none. */
const struct page_file *page_find(const char *path);

#endif
