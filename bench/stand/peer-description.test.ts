import { expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fillIn, readPeerDescription } from "./peer-description.ts";

const described = [...new Bun.Glob("*").scanSync(join(import.meta.dir, "../peers"))];

const places = {
  port: "4000",
  upstream: "127.0.0.1:5000",
  upstream_port: "5000",
  folder: "/run/peer",
  installed: "/opt/peers",
};

test("every description of the repository can be read", () => {
  expect(described.length).toBeGreaterThan(0);
  for (const name of described) {
    const description = readPeerDescription(join(import.meta.dir, "../peers", name));
    expect(`${description.name}.yaml`).toBe(name);
  }
});

test("places in braces are filled in, and other braces stay", () => {
  const template = '{"listen": {port}, "to": "http://{upstream}/v1", "in": "{folder}", "a": {b}}';
  expect(fillIn(template, places)).toBe(
    '{"listen": 4000, "to": "http://127.0.0.1:5000/v1", "in": "/run/peer", "a": {b}}',
  );
});

test("a description with an unknown field is refused, and the field is named", () => {
  const folder = mkdtempSync(join(tmpdir(), "sluice-peer-test-"));
  try {
    const path = join(folder, "peer.json");
    const description = { name: "a", notes: "b", install: "c", command: ["d"], warmup: 1 };
    writeFileSync(path, JSON.stringify(description));
    expect(() => readPeerDescription(path)).toThrow('"warmup"');
  } finally {
    rmSync(folder, { recursive: true });
  }
});
