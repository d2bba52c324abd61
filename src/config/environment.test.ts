import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "bun:test";
import { findConfig, readEnvironment, usualConfigPaths } from "./environment.ts";

const names = ["SLUICE_CONFIG", "SLUICE_ADMIN_URL", "SLUICE_ADMIN_TOKEN"] as const;
const before = names.map((name) => process.env[name]);

function set(name: string, value: string | undefined): void {
  if (value === undefined) delete process.env[name];
  else process.env[name] = value;
}

afterEach(() => names.forEach((name, index) => set(name, before[index])));

test("the path of the file comes from the environment", () => {
  set("SLUICE_CONFIG", "/etc/sluice.yaml");
  const environment = readEnvironment();
  expect(environment.configPath).toBe("/etc/sluice.yaml");
  expect(environment.variables["SLUICE_CONFIG"]).toBe("/etc/sluice.yaml");
});

test("an empty variable counts as absent", () => {
  set("SLUICE_CONFIG", "");
  expect(readEnvironment().configPath).toBeUndefined();
});

test("the management token is read without line ends and is not printed by accident", () => {
  set("SLUICE_ADMIN_URL", "http://127.0.0.1:8081");
  set("SLUICE_ADMIN_TOKEN", "a token\r\n");
  const { adminUrl, adminToken } = readEnvironment();
  expect(adminUrl).toBe("http://127.0.0.1:8081");
  expect(adminToken?.reveal()).toBe("a token");
  expect(Bun.inspect(adminToken)).not.toContain("a token");
  set("SLUICE_ADMIN_TOKEN", " \n");
  expect(readEnvironment().adminToken).toBeUndefined();
});

test("a snapshot does not follow later changes", () => {
  set("SLUICE_CONFIG", "first");
  const environment = readEnvironment();
  set("SLUICE_CONFIG", "second");
  expect(environment.variables["SLUICE_CONFIG"]).toBe("first");
});

test("sluice.yaml of the working directory is used, unless the environment names another file", () => {
  const folder = mkdtempSync(join(tmpdir(), "sluice-environment-"));
  const home = process.cwd();
  process.chdir(folder);
  try {
    set("SLUICE_CONFIG", undefined);
    expect(readEnvironment().configPath).toBeUndefined();
    writeFileSync("sluice.yaml", "");
    expect(readEnvironment().configPath).toBe("sluice.yaml");
    set("SLUICE_CONFIG", "other.yaml");
    expect(readEnvironment().configPath).toBe("other.yaml");
  } finally {
    process.chdir(home);
    rmSync(folder, { recursive: true });
  }
});

test("without sluice.yaml, the file of the service is used", () => {
  const folder = mkdtempSync(join(tmpdir(), "sluice-environment-"));
  const [here, service] = [join(folder, "sluice.yaml"), join(folder, "service.yaml")];
  try {
    expect(findConfig([here, service])).toBeUndefined();
    writeFileSync(service, "");
    expect(findConfig([here, service])).toBe(service);
    writeFileSync(here, "");
    expect(findConfig([here, service])).toBe(here);
  } finally {
    rmSync(folder, { recursive: true });
  }
  const unit = readFileSync(
    new URL("../../deploy/systemd/sluice.service", import.meta.url),
    "utf8",
  );
  expect(unit).toContain(`--config ${usualConfigPaths[1]}`);
});
