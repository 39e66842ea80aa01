/* accept4() of this program fails, also for the libraries that it is linked with. */
#ifndef TESTS_LIB_ACCEPT_FAULT_H
#define TESTS_LIB_ACCEPT_FAULT_H

/* Of every accept4() from now on; 0: they go on. */
extern _Atomic int accept_fault;
/* How many have failed. After a thousand the program is ended: it does nothing else any more. */
extern _Atomic unsigned accept_failures;

#endif
