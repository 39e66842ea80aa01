/* Takes turns: records what a process is told of an election, and gives leadership up now and then.
 * locks.py judges the records.
 *
 *   locks_open(records, election);          before it campaigns; RECORDS is a file that exists
 *   locks_step(handle, epoch);              about every millisecond; 0: it does not lead
 *
 * One election a thread; a failure ends the process.
 */
#ifndef TORTURE_LOCKS_H
#define TORTURE_LOCKS_H

#include <baton.h>
#include <stdint.h>

void locks_open(const char *records, const char *election);
void locks_step(struct baton_election *election, uint64_t epoch);

#endif
