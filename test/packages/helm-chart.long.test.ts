import { beforeAll, expect } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { cacheFolder, run, testNeedingRegistry } from "../sdk/registry-test.ts";
import { isComplete } from "../support/requirement.ts";

const chart = fileURLToPath(new URL("../../deploy/helm/sluice", import.meta.url));
/** The oldest version that the chart allows, and a recent one. */
const versions = ["1.27", "1.35"];
const helmModule = "helm.sh/helm/v3/cmd/helm@v3.16.4";
const validator = "kubernetes-validate==1.37.0";
const folder = cacheFolder("chart", helmModule + validator);
const helm = Bun.which("helm") ?? join(folder, "helm");
/** Helm is compiled once, on a machine that may be busy. */
const buildTimeoutMs = 1_800_000;
const testChart = testNeedingRegistry("Helm");

const secret = ["--set", "secrets.existing=sluice"];
const variants: Readonly<Record<string, readonly string[]>> = {
  "as it is": secret,
  "with all that it has": [
    ...secret,
    "--set=autoscaling.enabled=true,serviceMonitor.enabled=true,persistence.storageClassName=fast",
    "--set=networkPolicy.data[0].namespaceSelector.matchLabels.team=apps",
    "--set=serviceMonitor.labels.release=prometheus",
  ],
  "with as little as possible": [
    "--set=secrets.values.SLUICE_PEPPER=secret",
    "--set=podDisruptionBudget.enabled=false,networkPolicy.enabled=false",
  ],
};

beforeAll(async () => {
  if (!isComplete) return;
  if (!existsSync(join(folder, "bin/kubernetes-validate"))) {
    await run(["python3", "-m", "venv", folder]);
    await run([join(folder, "bin/pip"), "install", "--quiet", validator]);
  }
  if (!existsSync(helm)) await run(["go", "install", helmModule], { env: { GOBIN: folder } });
}, buildTimeoutMs);

for (const [name, values] of Object.entries(variants)) {
  testChart(`the chart ${name} is what Kubernetes and Helm accept`, async () => {
    await run([helm, "lint", "--strict", chart, ...values]);
    for (const version of versions) {
      const manifest = join(folder, `manifest-${version}.yaml`);
      await Bun.write(manifest, await template([...values, "--kube-version", `${version}.0`]));
      const check = [join(folder, "bin/kubernetes-validate"), "--strict", "-k", version, manifest];
      // Without the schema of the Prometheus operator, a warning is all that its object gets.
      expect(await run(check)).toContain("passed for resource statefulset");
    }
  });
}

testChart("the chart refuses values that it does not have, and no secret", async () => {
  const wrong = [
    [...secret, "--set=replica=3"],
    [...secret, "--set=persistence.size=much"],
    [...secret, "--set=config.data_dir=/elsewhere"],
    [],
  ];
  for (const values of wrong) {
    const refused = template(values).then(
      () => "accepted",
      (error: unknown) => String(error),
    );
    expect(await refused).toMatch(/additional|pattern|match|must be|set secrets/i);
  }
});

function template(values: readonly string[]): Promise<string> {
  const version = values.includes("--kube-version") ? [] : ["--kube-version", "1.35.0"];
  return run([helm, "template", "trial", chart, ...version, ...values]);
}
