/* SIGINT and SIGTERM for commands that must clean up: the first one asks them to end, a second one
 * ends the process at once. */
#ifndef CLI_INTERRUPT_H
#define CLI_INTERRUPT_H

void interrupt_listen(void);
int interrupt_signal(void); /* 0: none has come */

#endif
