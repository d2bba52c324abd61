import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describeVersion, readCommit } from "./program-commit.ts";

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "sluice-commit-"));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const hash = "0123456789abcdef0123456789abcdef01234567";
const short = "0123456789ab";

function write(path: string, text: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
}

test("an npm package has its commit in a file", () => {
  write("commit", `${short}\n`);
  expect(readCommit(root)).toBe(short);
});

test("a checkout has it in its branch, packed or not, or in its head", () => {
  write(".git/HEAD", "ref: refs/heads/main\n");
  expect(readCommit(root)).toBeUndefined();
  write(
    ".git/packed-refs",
    `# pack-refs\n${"f".repeat(40)} refs/heads/other\n${hash} refs/heads/main\n`,
  );
  expect(readCommit(root)).toBe(short);
  write(".git/refs/heads/main", `${"a".repeat(40)}\n`);
  expect(readCommit(root)).toBe("a".repeat(12));
  write(".git/HEAD", `${hash}\n`);
  expect(readCommit(root)).toBe(short);
  // Left by a package that was not finished.
  write("commit", "ffffffffffff\n");
  expect(readCommit(root)).toBe(short);
});

test("a worktree shares the branches of its repository", () => {
  write("main/.git/refs/heads/side", `${hash}\n`);
  write("main/.git/worktrees/side/HEAD", "ref: refs/heads/side\n");
  write("main/.git/worktrees/side/commondir", "../..\n");
  write("side/.git", "gitdir: ../main/.git/worktrees/side\n");
  expect(readCommit(join(root, "side"))).toBe(short);
});

test("without any of these it is unknown, and said to be", () => {
  expect(readCommit(root)).toBeUndefined();
  write("commit", "none\n");
  expect(readCommit(root)).toBeUndefined();
  expect(describeVersion("1.2.3", undefined)).toBe("1.2.3 (commit unknown)");
  expect(describeVersion("1.2.3", short)).toBe("1.2.3 (commit 0123456789ab)");
});
