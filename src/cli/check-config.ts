import { formatProblems, parseConfig } from "../config/load.ts";
import { checkWarnings } from "../config/problems/warnings.ts";
import { usualConfigPaths } from "../config/environment.ts";
import { exitCodes } from "../process/exit-codes.ts";
import { readArguments, UsageError, type Command } from "./command.ts";
import { settingsOptions } from "./serve/load-settings.ts";
import { readConfigFile } from "./serve/read-config-file.ts";

export const checkConfigCommand: Command = {
  name: "check-config",
  help: () => `Usage: sluice check-config [FILE] [--config FILE] [--json]

Checks a configuration file without starting anything. Without FILE: SLUICE_CONFIG, else
./sluice.yaml, else /etc/sluice/sluice.yaml.

Options:
  -c, --config FILE   the same as FILE, as other commands take it
  --json              print {"ok": ..., "problems": [...], "warnings": [...]} instead of text

Exit code: 0 the file is good, 1 it has problems, 2 wrong usage.`,
  run(args, io) {
    const { values, positionals } = readArguments(args, {
      config: settingsOptions.config,
      json: { type: "boolean" },
    });
    const named = [values.config, ...positionals].filter((path) => path !== undefined);
    const [path = io.environment.configPath, ...others] = named;
    if (others.length > 0) throw new UsageError("name one file to check");
    if (path === undefined) {
      throw new UsageError(
        `name the file to check: there is no ${usualConfigPaths.join(", nor ")}`,
      );
    }
    const env = io.environment.variables;
    const result = parseConfig(readConfigFile(path), { name: path, env });
    const problems = result.ok ? [] : result.problems;
    const warnings = result.ok ? checkWarnings(result.config, io.clock.now()) : [];
    if (values.json === true) {
      io.print(JSON.stringify({ ok: result.ok, problems, warnings }));
    } else if (result.ok) {
      io.print(`${path}: good`);
      for (const warning of warnings) io.report(`warning: ${warning}`);
    } else io.report(formatProblems(path, problems));
    return Promise.resolve(result.ok ? exitCodes.ok : exitCodes.failed);
  },
};
