import { readFileSync } from "node:fs";
import { verifiedSslMode, verifiedSslModes } from "../../../domain/addresses/ssl-mode.ts";
import { UnreadableUrlFile } from "../../errors.ts";

const files = ["sslrootcert", "sslcert", "sslkey"];

/**
 * The URL of a database as the driver takes it. The driver verifies certificates with each of
 * several modes, and warns that a later version will not: so they are named as what they are here.
 * `setting` is where the URL is from. Throws `UnreadableUrlFile`: the driver would not say which
 * setting names the file.
 */
export function driverUrl(url: string, setting: string): string {
  const { searchParams } = new URL(url);
  for (const name of files) {
    const path = searchParams.get(name);
    if (path !== null && path !== "") refuseUnreadable(path, `${name} of ${setting}`);
  }
  return verifiedSslMode(url) === undefined
    ? url
    : url.replace(verifiedSslModes, "$<before>verify-full");
}

function refuseUnreadable(path: string, name: string): void {
  try {
    readFileSync(path);
  } catch (error) {
    throw new UnreadableUrlFile(name, error instanceof Error ? error.message : String(error));
  }
}
