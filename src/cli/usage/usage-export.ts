import { exitCodes } from "../../process/exit-codes.ts";
import { CommandError, UsageError } from "../command.ts";
import { callFilterOptions, readCallFilter } from "./usage-calls.ts";
import { readUsageFilter, usageFilterOptions } from "./usage-filter.ts";
import { defineVerb } from "../verb.ts";

export const usageExportVerb = defineVerb({
  name: "export",
  summary: "write single calls as CSV or NDJSON, however many",
  options: {
    format: { type: "string", value: "csv|ndjson", about: "default: csv" },
    ...usageFilterOptions,
    ...callFilterOptions,
  },
  examples: ["usage export --format csv --since 30d > calls.csv"],
  async run({ args, client, io, isJson }) {
    args.none();
    const format = args.text("format") ?? (isJson ? "ndjson" : "csv");
    if (format !== "csv" && format !== "ndjson") {
      throw new UsageError("--format takes csv or ndjson");
    }
    const filter = await readUsageFilter(args, client, io);
    const query = { ...filter, ...readCallFilter(args), format };
    for await (const bytes of client.stream("/usage/export", query)) {
      // Whoever reads only the beginning, such as `head`, is done.
      if (!(await io.write(bytes))) return exitCodes.ok;
      if (io.signal.aborted) throw new CommandError("the export was ended before its end");
    }
    return exitCodes.ok;
  },
});
