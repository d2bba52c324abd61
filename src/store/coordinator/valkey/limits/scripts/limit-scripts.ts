import { includeScript } from "./include-script.ts";
import { giveBackScript, leaseScript } from "./lease-scripts.ts";
import {
  acquireScript,
  countScript,
  settleScript,
  uncountScript,
  useScript,
} from "./call-scripts.ts";

/** All scripts about limits. */
export const limitScripts = [
  acquireScript,
  countScript,
  uncountScript,
  useScript,
  settleScript,
  includeScript,
  leaseScript,
  giveBackScript,
];
