import { helpText, runSimulator } from "../../simulator/command.ts";
import type { Command } from "../command.ts";

export const simulatorCommand: Command = {
  name: "simulator",
  isService: true,
  summary: "run the simulated provider alone, to test clients against",
  help: helpText,
  run: (args, io) => runSimulator(args, { print: io.print, signal: io.signal }),
};
