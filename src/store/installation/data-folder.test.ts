import { expect, test } from "bun:test";
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Secret } from "../../domain/keys/secret.ts";
import { keepPepper, loadPepper } from "./data-folder.ts";

const random = (target: Uint8Array): Uint8Array => crypto.getRandomValues(target);

function withFolder(run: (folder: string) => void): () => void {
  return () => {
    const folder = mkdtempSync(join(tmpdir(), "sluice-pepper-"));
    try {
      run(folder);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  };
}

const modeOf = (path: string): number => statSync(path).mode & 0o777;

test(
  "a generated pepper is stored on request, readable by its owner only, and found again",
  withFolder((folder) => {
    const dataDir = join(folder, "data");
    const options = { configured: undefined, dataDir, random };
    const made = loadPepper(options);
    expect(made.secret.reveal()).toMatch(/^[0-9a-f]{64}$/);
    expect(made.isNew).toBe(true);
    expect(existsSync(dataDir)).toBe(false);
    keepPepper(made);
    expect(modeOf(join(dataDir, "pepper"))).toBe(0o600);
    const found = loadPepper(options);
    expect([found.secret.reveal(), found.isNew]).toEqual([made.secret.reveal(), false]);
  }),
);

test(
  "a pepper that another process has stored is not overwritten",
  withFolder((dataDir) => {
    const options = { configured: undefined, dataDir, random };
    const first = loadPepper(options);
    const second = loadPepper(options);
    keepPepper(first);
    expect(() => keepPepper(second)).toThrow("EEXIST");
    expect(readFileSync(join(dataDir, "pepper"), "utf8").trim()).toBe(first.secret.reveal());
  }),
);

test(
  "a pepper readable by others is made private",
  withFolder((dataDir) => {
    const path = join(dataDir, "pepper");
    writeFileSync(path, "x".repeat(40));
    chmodSync(path, 0o644);
    loadPepper({ configured: undefined, dataDir, random });
    expect(modeOf(path)).toBe(0o600);
  }),
);

test(
  "a damaged pepper is an error and never replaced: every key depends on it",
  withFolder((dataDir) => {
    writeFileSync(join(dataDir, "pepper"), "short");
    expect(() => loadPepper({ configured: undefined, dataDir, random })).toThrow("pepper");
  }),
);

test(
  "a configured pepper needs no file",
  withFolder((dataDir) => {
    const configured = new Secret("p".repeat(32));
    const pepper = loadPepper({ configured, dataDir, random });
    expect([pepper.secret, pepper.isNew]).toEqual([configured, false]);
    expect(() => statSync(join(dataDir, "pepper"))).toThrow();
  }),
);
