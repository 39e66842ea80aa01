/* A configuration by itself. raft.h declares what drivers may use of it. */
#ifndef RAFT_CONFIGURATION_H
#define RAFT_CONFIGURATION_H

#include "raft/raft.h"

/* Whether this core could have made it: the members are in order, and one of them may lead. */
bool configuration_is_sane(const struct raft_configuration *configuration);

#endif
