#include "cli/command.h"

#include "base/log.h"
#include "cli/groups.h"
#include "net/loop.h"
#include "options/config.h"
#include "options/misspelt.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define GROUPS(...) ((const struct option_group *const[]){__VA_ARGS__, &group_general, NULL})

const struct command commands[] = {
    {.name = "node",
     .arguments = "",
     .summary = "be a member of a group until stopped",
     .text = "Takes part in an election as a voter, a witness or a learner. The node listens on a "
             "control socket in its data directory, which status, members, watch, pass, cordon, "
             "uncordon, join and leave use, and with --http on a status server.\n\n"
             "SIGTERM and SIGINT hand leadership over and then end the node. On SIGHUP it reads "
             "certificates, keys, tokens and passwords again. Under systemd the node reports when "
             "it is ready, its status, and that it is alive (Type=notify).",
     .example = "baton node -n a -d /var/lib/baton --listen 127.0.0.1:7401 -p b=127.0.0.1:7402 "
                "-p c=127.0.0.1:7403",
     .groups = GROUPS(&group_election, &group_peers, &group_timing, &group_serve, &group_measure),
     .main = node_main},
    {.name = "agent",
     .arguments = "",
     .summary = "serve the elections of a group to the processes of this host",
     .text =
         "Takes part in a group with any number of elections, and serves them to local "
         "processes at a Unix socket, to programs in any language: docs/agent.md. With --listen "
         "and --peer the agents are a group of their own (--group, \"default\" if not given); "
         "with --provider redis://... they are clients of Redis.\n\n"
         "A process that dies is followed at once: the agent holds its pidfd. One that falls "
         "silent is followed after --client-lease.\n\n"
         "SIGTERM and SIGINT end the agent. In a group, what its clients lead goes on, and the "
         "next agent takes them over if it starts soon enough. On SIGHUP it reads certificates, "
         "keys and passwords again. Under systemd it reports when it is ready and that it is "
         "alive (Type=notify).",
     .example = "baton agent -n a -d /var/lib/baton --key-file /etc/baton/key --listen "
                "10.0.0.1:7400 -p b=10.0.0.2:7400 -p c=10.0.0.3:7400",
     .groups = GROUPS(&group_agent, &group_cluster, &group_peers, &group_timing),
     .main = agent_main},
    {.name = "elections",
     .arguments = "",
     .summary = "list the elections of the group of this host's agent",
     .text = "Prints for each election its leader, the epoch, what is left of the lease where that "
             "is known, and how many others wait.",
     .example = "baton elections\nbaton elections --json",
     .groups = GROUPS(&group_ask_agent, &group_output),
     .main = elections_main},
    {.name = "run",
     .arguments = "[--] CMD [ARG ...]",
     .summary = "run CMD only while this node leads",
     .text = "Takes part in an election and runs CMD while, and only while, this node leads. CMD "
             "finds the epoch in BATON_EPOCH, the election in BATON_ELECTION and the node in "
             "BATON_NODE; it should attach the epoch to everything it writes.\n\n"
             "When the lease is in jeopardy or leadership is to be handed over, CMD's process "
             "group gets SIGTERM, so early that SIGKILL, if it is needed, takes effect before the "
             "lease ends. When leadership is lost without warning, CMD gets SIGKILL. Signals are "
             "forwarded to CMD, SIGHUP as SIGTERM; after SIGTERM and SIGINT it is killed if it "
             "lives longer "
             "than --stop-timeout. Without a controlling terminal SIGHUP is not forwarded: baton "
             "then reads certificates, keys, tokens and passwords again. When CMD ends by itself, "
             "baton hands leadership over and ends "
             "with CMD's exit code.\n\n"
             "A supervisor process stands between baton and CMD. It ends CMD and all its "
             "descendants if baton dies, and before the lease ends if baton hangs. "
             "baton-guardian(8) and the documentation say what this rests on.\n\n"
             "Only the guardian's certificate ends this node's lease early, since it shows that "
             "CMD is dead, too.",
     .example = "baton run -n a -d /var/lib/baton --key-file /etc/baton/key --listen 10.0.0.1:7400 "
                "-p b=10.0.0.2:7400 -p c=10.0.0.3:7400 -- ./cron-job",
     .groups = GROUPS(&group_run, &group_election, &group_peers, &group_timing, &group_serve),
     .arguments_min = 1,
     .arguments_max = -1,
     .main = run_main},
    {.name = "once",
     .arguments = "NAME [--] CMD [ARG ...]",
     .summary = "run CMD on exactly one node; all nodes share its result",
     .text =
         "For database migrations: every node calls it with the same NAME, one of them runs "
         "CMD, the others wait, and all end with CMD's exit code. A node that comes later "
         "finds the result as long as it is kept, a failure for a shorter time. If the node that "
         "runs CMD fails, another "
         "node runs CMD again: CMD must tolerate being started twice.\n\n"
         "If this process gets SIGTERM, SIGINT or SIGHUP, or a node of higher priority is to "
         "lead, CMD's process group gets SIGINT or SIGTERM, and SIGKILL after "
         "--stop-timeout. CMD's exit code is not the result then: another node runs CMD "
         "again.\n\n"
         "The result is kept in the provider's state. With the embedded provider the nodes that "
         "call it form the group, so a majority of them must run at the same time.",
     .example = "baton once schema-42 -n a -d /var/lib/app --key-file /etc/app/key --listen "
                "10.0.0.1:7400 -p b=10.0.0.2:7400 -p c=10.0.0.3:7400 -- ./migrate",
     .groups = GROUPS(&group_once, &group_election, &group_peers, &group_timing),
     .interspersed = 1,
     .arguments_min = 2,
     .arguments_max = -1,
     .main = once_main},
    {.name = "cron",
     .arguments = "run|ls|check",
     .summary = "run a crontab on exactly one node of a group, and miss no fire when it fails",
     .text =
         "run takes part in an election on each of several hosts and fires the lines of --file "
         "where "
         "it leads. Each fire is claimed in the group's state before its command starts, and its "
         "end "
         "is kept there: after a failover none is lost, and none that has ended runs again. One "
         "that "
         "was missed or interrupted runs once more, unless its line says otherwise. Commands run "
         "in "
         "the shell under the supervisor of baton-run(1), which ends them before the lease ends; "
         "what "
         "they write goes to the log.\n\n"
         "The file is a crontab: minute, hour, day of the month, month and day of the week, or "
         "with "
         "seconds in front; @hourly and its like, @every TIME; NAME=value for the lines below, of "
         "which CRON_TZ or TZ is the time zone and SHELL the shell. Options of the next line stand "
         "in a comment: \"# baton: name=report overlap=wait missed=skip interrupted=skip "
         "jitter=30s\". docs/cron.md has all of it. A file with a mistake is refused whole. On "
         "SIGHUP "
         "it is read again, as are certificates, keys and passwords; if it is refused then, the "
         "lines of before remain.\n\n"
         "The command finds its line in BATON_CRON_LINE, the scheduled instant in BATON_CRON_FIRE "
         "and "
         "the number of the attempt in BATON_CRON_ATTEMPT, besides what CMD of run finds.\n\n"
         "ls prints for each line when it fired last, what became of that, how long it took, "
         "where, "
         "and when it fires next; it asks the agent of this host, or --provider, or the node of "
         "--data. check reads the file and prints the next fires.",
     .example = "baton cron run --election nightly --file /etc/baton/crontab\n"
                "baton cron ls --election nightly\n"
                "baton cron check --file /etc/baton/crontab --count 5",
     .groups = GROUPS(&group_cron, &group_election, &group_peers, &group_timing, &group_serve),
     .interspersed = 1,
     .arguments_min = 1,
     .arguments_max = 1,
     .main = cron_main},
    {.name = "status",
     .arguments = "",
     .summary = "show who leads, as a node or the agent knows it: leader, epoch, lease",
     .text = "Asks one node, or with --election the agent of this host. Without a flag it asks the "
             "agent, if there is one, of itself. The exit code is 0 whoever leads.",
     .example = "baton status -d /var/lib/baton --json\nbaton status --election report",
     .groups =
         GROUPS(&group_client, &group_of_agent, &group_ask_http, &group_answer, &group_output),
     .main = status_main},
    {.name = "members",
     .arguments = "",
     .summary = "list the members of the group as a node knows them",
     .text = "Asks one node, or with --election the agent of this host, which lists the processes "
             "that take part in it.",
     .example = "baton members -d /var/lib/baton\nbaton members --election report",
     .groups =
         GROUPS(&group_client, &group_of_agent, &group_ask_http, &group_answer, &group_output),
     .main = members_main},
    {.name = "watch",
     .arguments = "",
     .summary = "print the events of a node as they happen",
     .text = "Prints one line for each event until it is interrupted or the node ends. With "
             "--election, who leads that election of the agent of this host, and each change.",
     .example = "baton watch -d /var/lib/baton --json\nbaton watch --election report",
     .groups = GROUPS(&group_client, &group_of_agent, &group_watch, &group_output),
     .main = watch_main},
    {.name = "pass",
     .arguments = "",
     .summary = "hand leadership over to another node",
     .text =
         "Ask the node that leads: it voids its lease and hands over to the node named by --to, or "
         "to the best placed one. The command returns when another node leads. A node that does "
         "not lead refuses, and names the leader. With --election ask any agent of the group: the "
         "process that leads is told to finish its work, and another one leads when it has.",
     .example = "baton pass -d /var/lib/baton --to b\nbaton pass --election report",
     .groups = GROUPS(&group_pass, &group_client, &group_of_agent, &group_answer, &group_output),
     .main = operate_main},
    {.name = "cordon",
     .arguments = "[PROCESS]",
     .summary = "keep a node from leading; it goes on voting",
     .text = "A leader that is cordoned hands leadership over first. The cordon lasts until "
             "uncordon, or until the node's process ends. With --election, the process of that "
             "name, in that election of the agent.",
     .example = "baton cordon -d /var/lib/baton\nbaton cordon --election report host.4711",
     .groups = GROUPS(&group_client, &group_of_agent, &group_answer, &group_output),
     .interspersed = 1,
     .arguments_max = 1,
     .main = operate_main},
    {.name = "uncordon",
     .arguments = "[PROCESS]",
     .summary = "let a node lead again",
     .text = "Ends a cordon.",
     .example = "baton uncordon -d /var/lib/baton\nbaton uncordon --election report host.4711",
     .groups = GROUPS(&group_client, &group_of_agent, &group_answer, &group_output),
     .interspersed = 1,
     .arguments_max = 1,
     .main = operate_main},
    {.name = "join",
     .arguments = "NAME=HOST:PORT[*WEIGHT][^PRIORITY][/KIND]",
     .summary = "add a member to the group",
     .text =
         "Ask any node: the leader makes the change. Start the new member first, with --join: "
         "the leader asks it for its identity, and it follows as a learner and votes once it has "
         "caught up. The command returns then; if the member does not catch up in time, the "
         "change is reverted and the command fails. Weight, priority and kind (voter, witness or "
         "learner) are those of --peer: 1, 0 and voter if not given. An existing member keeps "
         "what is not given; but a learner becomes a voter if nothing is given, as after a join "
         "that was interrupted. A member's address changes only with --replace.",
     .example = "baton join -d /var/lib/baton d=10.0.0.4:7400",
     .groups = GROUPS(&group_join, &group_client, &group_answer, &group_output),
     .interspersed = 1,
     .arguments_min = 1,
     .arguments_max = 1,
     .main = operate_main},
    {.name = "leave",
     .arguments = "NAME",
     .summary = "remove a member from the group",
     .text =
         "Ask any node: the leader makes the change, and hands over first if it is the member "
         "that leaves. The command returns when the change is complete. Stop the removed member "
         "afterwards.",
     .example = "baton leave -d /var/lib/baton d",
     .groups = GROUPS(&group_client, &group_answer, &group_output),
     .interspersed = 1,
     .arguments_min = 1,
     .arguments_max = 1,
     .main = operate_main},
    {.name = "state",
     .arguments = "get|put|delete|list|watch [KEY|PREFIX] [VALUE]",
     .summary = "read and change the keyed state of the group of this host's agent",
     .text =
         "get prints the value of a key, as it is. put sets it, to VALUE or to what standard "
         "input has; delete removes it; with --json both print the key's new revision. list "
         "prints the keys that begin with a prefix, and watch these and then every change until "
         "it is interrupted, or --timeout is over. All agents of the group have the same state, "
         "and see changes in one order.",
     .example = "baton state put colour green\nbaton state get colour\n"
                "baton state put --revision 0 job/42 <job.json\nbaton state watch job/ --json",
     .groups = GROUPS(&group_change, &group_ask_agent, &group_output),
     .interspersed = 3,
     .arguments_min = 1,
     .arguments_max = 3,
     .main = state_main},
    {.name = "publish",
     .arguments = "CHANNEL [MESSAGE]",
     .summary = "send a message to all that subscribe to a channel",
     .text = "Sends MESSAGE, or what standard input has, through the agent of this host. Whoever "
             "subscribes to the channel at any agent of the group gets it at most once; nothing is "
             "kept for those that come later.",
     .example = "baton publish deploys 'build 42'",
     .groups = GROUPS(&group_ask_agent),
     .interspersed = 2,
     .arguments_min = 1,
     .arguments_max = 2,
     .main = publish_main},
    {.name = "subscribe",
     .arguments = "CHANNEL",
     .summary = "print the messages of a channel as they come",
     .text = "Prints each message on a line until it is interrupted.",
     .example = "baton subscribe deploys\nbaton subscribe deploys --count 1",
     .groups = GROUPS(&group_subscribe, &group_socket, &group_output),
     .interspersed = 1,
     .arguments_min = 1,
     .arguments_max = 1,
     .main = subscribe_main},
    {.name = "worker",
     .arguments = "",
     .summary = "run the work of a pool on this host",
     .text =
         "Runs the commands that are submitted to a pool with 'baton work submit', as many at a "
         "time as it has slots, and may lead the pool: the leader places the work on the workers. "
         "An item runs on one worker at a time, whatever fails: when this worker dies, its items "
         "run elsewhere at once, and when it hangs, after its lease; a supervisor ends what it "
         "runs before that.\n\n"
         "A command finds its item in BATON_ITEM, the number of the attempt in BATON_ATTEMPT, and "
         "in BATON_EPOCH a number that grows with each attempt: it should attach it to everything "
         "it writes. The end of its output is kept with its exit code. How far it is, 0 to 100, it "
         "may write to the file BATON_PROGRESS, a line each time.\n\n"
         "On the first SIGTERM or SIGINT the worker gets nothing new, services move, and jobs may "
         "end for --drain-timeout. A second signal stops the jobs, with --stop-timeout, and other "
         "workers run them; a third one kills them. Without a controlling terminal it reads "
         "certificates, keys, tokens and passwords again on SIGHUP. Under systemd it reports when "
         "it is ready and that it is alive (Type=notify).",
     .example = "baton worker --slots 4 --label gpu --label zone=a\n"
                "baton worker --pool nightly --provider redis://10.0.0.1",
     .groups = GROUPS(&group_pool, &group_worker, &group_pool_leader, &group_serve),
     .main = worker_main},
    {.name = "work",
     .arguments = "submit|ls|show|logs|watch|cancel|drain|undrain|stats [ARG ...]",
     .summary = "submit work to a pool, and see and change what becomes of it",
     .text =
         "submit gives CMD to the pool, or each line of --file as a command for the shell, and "
         "prints the ids of the items; what it has printed is kept, and is run. With --wait it "
         "shows how far the pool is, waits until all have ended, and ends with 1 if one has "
         "failed; for a single CMD it prints the output and ends with its exit code.\n\n"
         "ls lists the items, show prints one of them, logs the end of its output, watch each "
         "change as it happens. cancel stops items for good. drain lets a worker get nothing new "
         "and moves its services, undrain ends that. stats shows the workers and what the pool's "
         "leader has counted.",
     .example = "baton work submit --wait -- ./convert video.mp4\n"
                "baton work submit --file jobs.txt --retries 2 --wait\n"
                "baton work submit --service --id collector -- ./collect\n"
                "baton work ls --json\nbaton work drain host-3",
     .groups = GROUPS(&group_pool, &group_submit, &group_ask_pool, &group_output),
     .interspersed = 1,
     .arguments_min = 1,
     .arguments_max = -1,
     .main = work_main},
    {.name = "fleet",
     .arguments =
         "status|workers|cameras|displays|apply|cordon|uncordon|drain|undrain|move|session|"
         "stage|tail [ARG ...]",
     .summary = "see and change a fleet of detector workers, which baton-fleet runs",
     .text =
         "status prints the leader, the processes, and how many workers and subscriptions there "
         "are. workers lists the workers, cameras each camera with the display that watches it, "
         "the worker that has it, and whether its frames arrive, displays their sessions and "
         "stages.\n\n"
         "apply FILE makes the models, cameras, displays and subscriptions what the YAML file "
         "says; "
         "with --prune also by deleting what is not in it, with --dry-run it only counts. - is "
         "standard input. cordon keeps a worker from getting anything new, drain also moves what "
         "it "
         "has; uncordon and undrain end that. move SUBSCRIPTION WORKER moves a subscription with "
         "all of its camera. session DISPLAY SESSION and stage DISPLAY STAGE set what the workers "
         "are told of a display; none takes it away. tail prints what happens until it is "
         "interrupted, and goes on when a process has failed.\n\n"
         "Any process of the fleet, baton-fleet(8), can be asked.",
     .example = "baton fleet status\nbaton fleet apply fleet.yaml --prune --dry-run\n"
                "baton fleet drain 10.0.0.7-8000\n"
                "baton fleet move 'display-1;cam-1' 10.0.0.8-8000\n"
                "baton fleet tail --only worker-offline,worker-online --json",
     .groups = GROUPS(&group_fleet, &group_fleet_apply, &group_output),
     .interspersed = 3,
     .arguments_min = 1,
     .arguments_max = -1,
     .main = fleet_main},
    {.name = "explain",
     .arguments = "",
     .summary = "compute from the settings how long a failover takes at worst",
     .text = "Needs no running node. Prints how the times relate, what each fault costs at worst, "
             "and how wrong a clock's rate may be. Settings that could elect two leaders are "
             "refused with the inequality that fails.",
     .example = "baton explain --preset lan --lease 1s",
     .groups = GROUPS(&group_timing, &group_output),
     .main = explain_main},
    {.name = "demo",
     .arguments = "",
     .summary = "show how a group of five survives faults",
     .text = "Starts nodes on this machine, shows them in a live table, kills the leader with "
             "SIGKILL, stops one with SIGSTOP, cuts one off, hands leadership over, and prints for "
             "each how long the group was without a leader. Ends by itself in less than 30 s. "
             "On a pipe it prints lines.",
     .example = "baton demo",
     .groups = GROUPS(&group_demo),
     .main = demo_main},
    {.name = "bench",
     .arguments = "failover|renew|elections|state|placement|work",
     .summary = "measure how fast leadership moves, and what many elections and writes cost",
     .text =
         "failover starts real processes, injects a fault into the leader, and measures the "
         "time from the fault to the moment when another process leads and acts, and the gap "
         "without a leader. With --rtt each node is a host of its own on a network that delays "
         "and loses packets, and its measured round trip and the packets' lateness are "
         "printed, too.\n\n"
         "renew leads many elections on one Redis server from one process, and measures how "
         "many leases it renews in a second, how long a renewal takes, and what an election "
         "costs in processor time and memory. In the same run it measures what "
         "redis-benchmark achieves with the same script on the same server with as many "
         "requests under way. It uses <baton.h>, as a program does: the memory is the resident "
         "memory for each election with one listener, including the connection's buffers and "
         "the guardian's slot.\n\n"
         "elections lets three processes of one raft: group take part in many elections, kills the "
         "one that leads some of them, and measures the time until others lead all of these; "
         "and what an election costs in memory, and all of them in processor time.\n\n"
         "state writes to the keyed state of a group of three agents, and in the same run to three "
         "etcd servers by etcd's own client, as Debian packages them: writes in a second, the time "
         "of a write, and the ratio of ours to etcd's. Both are on loopback, store with fsync as "
         "they do by default, and have their files in TMPDIR, or /var/tmp. Each client has a "
         "connection and a key of its own; the clients are spread over the nodes, and the first "
         "one is at the leader's. The clients share the processors with the servers, as etcd's "
         "do. Without etcd ours is measured alone.\n\n"
         "placement computes where the items of a pool go: all anew, when a worker is lost, and "
         "when it comes back empty. It prints the time of each, how many items move, and the "
         "memory that the calculation takes. Every round has a pool of its own with GPUs, zones, "
         "groups of items that share a worker, and slots for about half as many items more; loads "
         "may differ by a tenth. It starts no process.\n\n"
         "work lets workers of a pool run items over three agents, or with --provider redis over a "
         "server: 20 workers and 500 items if not given. --fault worker kills the worker that has "
         "most of them, and measures the time until all of these run elsewhere; --fault master "
         "kills the pool's leader, and measures the time until an item that is submitted then is "
         "started by the next one, with the ledger as it was stored, or with --ledger lost rebuilt "
         "from the workers. doubles counts items that started while another copy was alive.",
     .example = "baton bench failover --fault kill --rounds 50 --json\n"
                "baton bench failover --rtt 0.5ms --jitter 0.2ms --loss 1%\n"
                "baton bench renew --elections 10000\n"
                "baton bench elections --elections 10000 --held 3000 --rounds 20\n"
                "baton bench state --clients 1,64,512\n"
                "baton bench placement --items 10000 --workers 500\n"
                "baton bench work --fault worker --workers 5 --items 5000",
     .groups = GROUPS(&group_bench, &group_bench_renew, &group_bench_state, &group_bench_placement,
                      &group_bench_work),
     .interspersed = 1,
     .arguments_min = 1,
     .arguments_max = 1,
     .main = bench_main},
    {.name = "help",
     .arguments = "[COMMAND]",
     .summary = "explain baton or one of its commands",
     .text = "Prints the help, a man page, or a completion for a shell.",
     .example = "baton help run",
     .groups = GROUPS(&group_help),
     .interspersed = 1,
     .arguments_max = 1,
     .main = help_main},
    {.name = NULL},
};

const struct command *command_find(const char *name)
{
    for (const struct command *command = commands; command->name; command++) {
        if (strcmp(command->name, name) == 0) {
            return command;
        }
    }
    return NULL;
}

static bool is_option(const char *name)
{
    for (const struct command *command = commands; command->name; command++) {
        for (size_t i = 0; command->groups[i]; i++) {
            for (const struct option_spec *spec = command->groups[i]->specs; spec->name; spec++) {
                if (strcmp(spec->name, name) == 0) {
                    return true;
                }
            }
        }
    }
    return false;
}

const struct config_rules command_file_rules = {.option = "config", .is_known = is_option};

void command_warn_of_misspelt(const struct command *called)
{
    char program[32];

    (void)snprintf(program, sizeof(program), "baton %s", called->name);
    for (char **entry = environ; *entry; entry++) {
        struct misspelt misspelt;
        if (misspelt_begin(&misspelt, *entry)) {
            for (const struct command *command = commands; command->name; command++) {
                misspelt_compare(&misspelt, command->groups);
            }
            misspelt_warn(&misspelt, program);
        }
    }
}

int command_open_loop(uv_loop_t *ret, struct baton_error *reterr)
{
    int failed = loop_init(ret);

    return failed ? error_set(reterr, BATON_EIO,
                              "no event loop: %s; raise the limit of open files (ulimit -n)",
                              uv_strerror(failed))
                  : 0;
}

void command_watch(const struct invocation *invocation, uv_loop_t *loop, uv_poll_t *ret, int fd,
                   uv_poll_cb on_readable, void *userdata)
{
    int failed = uv_poll_init(loop, ret, fd);

    if (failed) {
        (void)fprintf(stderr, "baton %s: a descriptor cannot be watched: %s\n",
                      invocation->command->name, uv_strerror(failed));
        _exit(EXIT_STORAGE);
    }
    ret->data = userdata;
    (void)uv_poll_start(ret, UV_READABLE, on_readable);
}

void command_tell(const struct invocation *invocation, const struct baton_error *error)
{
    (void)fprintf(stderr, "%sbaton %s: %s\n", log_prefix(STDERR_FILENO, LOG_ERROR),
                  invocation->command->name, error->message);
}

int command_fail(const struct invocation *invocation, const struct baton_error *error)
{
    const char *name = invocation->command->name;
    int code = (int)exit_code_of_error(error->code);
    command_tell(invocation, error);
    if (code == EXIT_USAGE_WRONG) {
        (void)fprintf(stderr, "%sbaton %s: 'baton %s --help' lists the flags and their values\n",
                      log_prefix(STDERR_FILENO, LOG_ERROR), name, name);
    }
    return code;
}
