import { expect, test } from "bun:test";
import packageJson from "../package.json" with { type: "json" };
import packageLock from "../package-lock.json" with { type: "json" };

interface Bill {
  readonly bomFormat: string;
  readonly metadata: { readonly component: { readonly name: string; readonly version: string } };
  readonly components: readonly { readonly name: string; readonly version: string }[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[];
}

test("the bill of materials names every package of production, and no other", () => {
  const script = new URL("sbom.ts", import.meta.url).pathname;
  const { stdout } = Bun.spawnSync([process.execPath, script]);
  const { bomFormat, metadata, components, dependencies } = JSON.parse(stdout.toString()) as Bill;
  expect(bomFormat).toBe("CycloneDX");
  expect(metadata.component).toMatchObject({ name: "sluice", version: packageJson.version });

  const named = components.map(({ name, version }) => `${name}@${version}`);
  const direct = Object.entries(packageJson.dependencies).map(([name, at]) => `${name}@${at}`);
  expect(direct.filter((each) => !named.includes(each))).toEqual([]);
  const installed = Object.entries(packageLock.packages)
    // The workspace is part of the program.
    .flatMap(([path, entry]) => {
      if (!path.startsWith("node_modules/") || "dev" in entry || "link" in entry) return [];
      return [`${path.slice(path.lastIndexOf("node_modules/") + 13)}@${entry.version}`];
    });
  expect(named.toSorted()).toEqual(installed.toSorted());

  const refs = dependencies.flatMap(({ ref, dependsOn }) => [ref, ...dependsOn]);
  expect(new Set(refs)).toEqual(new Set([`sluice@${packageJson.version}`, ...named]));
});
