/** Prints five million bytes as a command does, to whatever reads them. */
import { StandardStreams } from "../../src/cli/serve/standard-streams.ts";
import { systemClock } from "../../src/domain/clock.ts";

const streams = new StandardStreams(systemClock);
for (let line = 0; line < 50_000; line += 1) streams.print(`${line} `.padEnd(99, "x"));
const isWritten = await streams.finish(new AbortController().signal);
process.exitCode = isWritten && streams.failure === undefined ? 0 : 1;
