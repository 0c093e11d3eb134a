"""The launcher behind scripts/run: from a config to a finished job on this machine.

    errors      what ends the launcher: one line for the user and an exit status
    arguments   the command line: what is ours, what goes on to the programs
    lines       bytes that a program wrote -> lines that a terminal can show
    settings    the effective config, as parley-worker reads it (it is never parsed here)
    ports       free ports that a restart can have again
    plan        settings + ports -> the command line of each process
    placement   --dry-run: what would be started, and which server would hold how much
    prepare     the build and the data
    outlet      a stream whose reader may stall or go
    screen      what a person sees: lines, and on a terminal a bar below them
    policy      who is told to end, and when: a state machine without processes and clock
    child       one process: how it is started, watched, signalled and reaped
    supervisor  joins policy, children, signals and screen in one loop, on one thread
    report      report.json and its table
    results     the folder for it and for the logs
    main        puts them together

The launcher has one thread: children are bound to the life of the thread that starts them.
"""
