# A person at a terminal: argv[1] holds QUESTION=ANSWER;…, the rest is the command to run in the terminal.
import os, pty, select, sys, time
answers = [pair.split("=", 1) for pair in sys.argv[1].split(";")]
child, terminal = pty.fork()
if child == 0:
    os.execvp(sys.argv[2], sys.argv[2:])
seen, since, end = b"", 0, time.time() + 100
while time.time() < end:
    if not select.select([terminal], [], [], 0.2)[0]:
        continue
    try:
        more = os.read(terminal, 65536)
    except OSError:
        break
    if not more:
        break
    seen += more
    if answers and answers[0][0].encode() in seen[since:]:
        since = len(seen)
        os.write(terminal, answers.pop(0)[1].encode() + b"\r")
sys.stdout.buffer.write(seen)
sys.stdout.flush()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
