import { join } from "node:path";
import type { Config } from "../../../config/config.ts";
import type { Clock } from "../../../domain/clock.ts";
import { processFolderName } from "../../../ledger/spool/process-folder.ts";
import { SpoolWriter, type SpoolWriterOptions } from "../../../ledger/spool/spool-writer.ts";

export interface SpoolOptions extends Pick<SpoolWriterOptions, "on" | "direct" | "onBatch"> {
  readonly config: Pick<Config, "dataDir" | "ledger">;
  readonly clock: Clock;
  /** Number of the data server; counts from 1. */
  readonly number: number;
}

/** The folder of all spools. */
export function spoolRoot(dataDir: string): string {
  return join(dataDir, "spool");
}

/** Opens a spool of this process. Throws when the folder of all spools is unusable. */
export function openSpool({ config, number, ...options }: SpoolOptions): SpoolWriter {
  const name = processFolderName(number, options.clock.now(), process.pid);
  return new SpoolWriter({
    ...options,
    root: spoolRoot(config.dataDir),
    name,
    settings: config.ledger,
  });
}
