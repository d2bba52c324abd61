import type { Command } from "../command.ts";
import { addSettingsOptions, exitCodeHelp } from "../program.ts";

/** The help of `serve`. The parent runs it, and `serve-options.ts` reads its options. */
export const serveCommand: Command = (made) => {
  addSettingsOptions(made)
    .description(
      "Without a configuration file a demo starts: every alias is served by a built-in simulator, " +
        "and a key to try it with is printed once.\n\nThis process starts the gateway processes " +
        "(`processes` in the file) and starts those that crash again. " +
        "`status` shows them.",
    )
    .option("--data <host:port>", "Address of the API, instead of the configured one.")
    .option(
      "--admin <host:port>",
      "Address of the control plane, metrics and health, instead of the configured one.",
    )
    .addHelpText(
      "after",
      `
SIGTERM: report not ready and serve for shutdown.pre_stop, then refuse new calls, let running ones
finish (shutdown.drain_timeout), and exit. SIGINT: the same without shutdown.pre_stop. A second
signal exits at once. SIGHUP: reload the configuration.
${exitCodeHelp("ended as requested", "could not start")}`,
    );
};
