/* The program `baton-fleet`. */
#include "fleet/program/program.h"

int main(int argc, char **argv)
{
    return program_main(&program_about, argc, argv);
}
