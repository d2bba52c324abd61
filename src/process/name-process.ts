import { writeFileSync } from "node:fs";

/** Longest name that Linux keeps. */
const nameBytes = 15;

/** Sets the name that `ps -o comm` and `top` show, where the system has one to set. */
export function nameProcess(name: string): void {
  try {
    writeFileSync("/proc/self/comm", name.slice(0, nameBytes));
  } catch {
    // Only Linux has it, and it is a convenience.
  }
}
