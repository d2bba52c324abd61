import { bedrockModes } from "./bedrock-modes.ts";
import { commonModes, faultModes, openaiModes } from "./fault-mode.ts";

/** The lines that list all faults with their meanings, by wire. */
export function faultListing(): readonly string[] {
  return [
    ...linesOf(commonModes),
    "",
    "On OpenAI's wire only:",
    "",
    ...linesOf(openaiModes),
    "",
    "On Bedrock's wire only, arguments being how many good frames come before the fault:",
    "",
    ...linesOf(bedrockModes),
  ];
}

function linesOf(modes: Readonly<Record<string, string>>): string[] {
  const width = Math.max(...Object.keys(faultModes).map((mode) => mode.length));
  return Object.entries(modes).map(([mode, meaning]) => `  ${mode.padEnd(width)}  ${meaning}`);
}
