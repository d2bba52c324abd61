import { helpText, runSimulator } from "../../simulator/command.ts";
import type { Command } from "../command.ts";

export const simulatorCommand: Command = {
  name: "simulator",
  isService: true,
  help: helpText,
  run: (args, io) => runSimulator(args, { print: io.print, signal: io.signal }),
};
