import { hasSupervisor } from "../../process/supervisor/restart/restart-socket.ts";

/** A gateway whose workers serve and whose control process does not. */
export interface LostControl {
  /** A sentence without its first word, "The gateway", and its full stop. */
  readonly text: string;
  /** What to do, as a phrase. */
  readonly advice: string;
}

const lostControl: LostControl = {
  text:
    "runs, but its control process does not answer: calls go on with the keys and settings that the " +
    "workers have",
  advice:
    "read the reason at the end of the gateway's log. Once it is corrected, control starts by itself",
};

/** Explains why control does not answer; undefined if no gateway runs on the data directory. */
export async function findLostControl(dataDir: string): Promise<LostControl | undefined> {
  return (await hasSupervisor(dataDir)) ? lostControl : undefined;
}
