/* How much memory the kernel must take apart before it can report this process's death.
 *
 * A death is proved when the process is gone, and it is gone when its last page is unmapped. Half
 * of a node's pages are code and constants that only its start has touched: relocations, the set-up
 * of OpenSSL and SQLite, the parsing of options. A leader lets go of them while all is quiet; what
 * it needs again is mapped again from the page cache, at a microsecond a time.
 */
#ifndef CLI_FOOTPRINT_H
#define CLI_FOOTPRINT_H

/* Unmaps the pages of all loaded segments that nobody may write to; they come back by themselves.
 * Any thread. A breakpoint of a debugger that was set before is lost with its page. */
void footprint_shed(void);

#endif
