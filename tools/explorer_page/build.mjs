// Builds the page's script and style into the package: npm ci && npm run build.
// The first line of the script is a hash of the sources, by which a test sees that it is theirs.

import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const assets = new URL("../../xtrace/_src/explorer/assets/", import.meta.url);
const sources = ["package-lock.json", "style.css", ...readdirSync(new URL("src/", import.meta.url)).map((n) => `src/${n}`)].sort();
const hash = createHash("sha256");
for (const name of sources) hash.update(readFileSync(new URL(name, import.meta.url)));
const mark = `explorer page ${hash.digest("hex").slice(0, 16)}`;

const made = await build({
  entryPoints: [new URL("src/main.js", import.meta.url).pathname],
  bundle: true, minify: true, format: "iife", target: "es2022", write: false, charset: "utf8", legalComments: "none",
});
const script = `// ${mark}\n${made.outputFiles[0].text}`;
writeFileSync(new URL("page.js", assets), script.replaceAll("</script", "<\\/script").trimEnd() + "\n");
const style = await build({ stdin: { contents: readFileSync(new URL("style.css", import.meta.url), "utf8"), loader: "css" }, minify: true, write: false, target: "es2022" });
writeFileSync(new URL("page.css", assets), style.outputFiles[0].text);
console.log(mark, script.length, "characters");
