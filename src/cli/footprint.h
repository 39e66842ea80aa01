/* Unmaps pages, so that the kernel can report this process's death sooner.
 *
 * A death is proved when the process is gone, that is, when its last page is unmapped. Half of a
 * node's pages are code and constants that only the start needs: relocations, the set-up of OpenSSL
 * and SQLite, the parsing of options. A leader unmaps them while all is quiet; if it needs a page
 * again, the kernel maps it from the page cache in a microsecond.
 */
#ifndef CLI_FOOTPRINT_H
#define CLI_FOOTPRINT_H

/* Unmaps the pages of all loaded read-only segments; the kernel maps them again on access. Any
 * thread. A debugger's breakpoint is lost with its page. */
void footprint_shed(void);

#endif
