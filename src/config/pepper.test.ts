import { expect, test } from "bun:test";
import { chmodSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Secret } from "../domain/secret.ts";
import { loadPepper } from "./pepper.ts";

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
  "a pepper is made once, kept for its owner only, and found again",
  withFolder((folder) => {
    const dataDir = join(folder, "data");
    const made = loadPepper({ configured: undefined, dataDir, random }).reveal();
    expect(made).toMatch(/^[0-9a-f]{64}$/);
    expect(modeOf(join(dataDir, "pepper"))).toBe(0o600);
    expect(loadPepper({ configured: undefined, dataDir, random }).reveal()).toBe(made);
  }),
);

test(
  "a pepper that others can read is closed to them",
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
    expect(loadPepper({ configured, dataDir, random })).toBe(configured);
    expect(() => statSync(join(dataDir, "pepper"))).toThrow();
  }),
);
