import type { Figure } from "../figure.ts";
import { driveCalls } from "../load/drive-calls.ts";
import { chatRequest } from "../load/requests.ts";
import { memoryBytes } from "../stand/process-usage.ts";
import { targets } from "../targets.ts";
import { pidOf } from "./holds.ts";
import type { FigureContext } from "./context.ts";

const connections = 16;
const sliceMs = 1_000;
/** What a call leaves for the collector: how a process that never collects grows. */
export async function measureGarbage(context: FigureContext): Promise<readonly Figure[]> {
  const { stand, plan, driver, progress } = context;
  await using sluice = await stand.startFreshSluice({
    environment: { BUN_JSC_useGC: "0" },
  });
  const request = chatRequest();
  const drive = async (least: number): Promise<number> => {
    let done = 0;
    while (done < least) {
      progress(`garbage: ${done} of ${least} calls`);
      const load = { destination: sluice, request, connections, durationMs: sliceMs };
      done += (await driveCalls(load, driver)).calls;
    }
    return done;
  };
  // Compiled code makes fewer objects.
  await drive(plan.warmUpCalls);
  const pids = [pidOf(sluice, "sluice-1")];
  const before = memoryBytes(pids);
  const calls = await drive(plan.garbageCalls);
  return [
    {
      name: "garbage.call",
      title: "Garbage of a chat call, process",
      unit: "kB",
      sluice: (memoryBytes(pids) - before) / calls / 1_000,
      target: targets.garbageKb,
    },
  ];
}
