/**
 * Loaded first by each process of a gateway whose event loop is watched. SIGUSR2 makes a process
 * write how long its loop was held, timer by timer, since the last signal: in milliseconds, of all
 * time, without that in which it waited for a core, and of CPU time alone.
 */
import { openSync, readSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const intervalMs = 1;
const mostSamples = 1_000_000;
const folder = process.env["SLUICE_BENCH_FOLDER"];

if (folder !== undefined) watch(folder);

function watch(target: string): void {
  const schedule = openSync("/proc/self/schedstat", "r");
  const text = Buffer.alloc(96);
  const waitedMs = (): number => {
    const bytes = readSync(schedule, text, 0, text.length, 0);
    return Number(text.toString("latin1", 0, bytes).split(" ")[1]) / 1_000_000;
  };
  const held = new Float32Array(mostSamples);
  const running = new Float32Array(mostSamples);
  const busy = new Float32Array(mostSamples);
  let count = 0;
  let last = performance.now();
  let lastWaited = waitedMs();
  let lastBusy = busyMs();
  const sample = (): void => {
    const now = performance.now();
    const waited = waitedMs();
    const cpu = busyMs();
    if (count < mostSamples) {
      const heldMs = Math.max(0, now - last - intervalMs);
      held[count] = heldMs;
      running[count] = Math.max(0, heldMs - (waited - lastWaited));
      busy[count] = cpu - lastBusy;
      count += 1;
    }
    last = now;
    lastWaited = waited;
    lastBusy = cpu;
    setTimeout(sample, intervalMs).unref();
  };
  setTimeout(sample, intervalMs).unref();
  process.on("SIGUSR2", () => {
    const samples = {
      held: [...held.subarray(0, count)],
      running: [...running.subarray(0, count)],
      busy: [...busy.subarray(0, count)],
    };
    count = 0;
    writeFileSync(join(target, `${process.pid}.json`), JSON.stringify(samples));
  });
}

/** CPU time of this thread. */
function busyMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}
