// Copies the built page to the file that the report embeds. With --check, fails if
// the committed page differs from the built one.
import { copyFileSync, mkdirSync, readFileSync } from "node:fs";

const built = new URL("../dist/index.html", import.meta.url);
const asset = new URL("../../crates/report/assets/page.html", import.meta.url);

if (process.argv.includes("--check")) {
  if (!readFileSync(built).equals(readFileSync(asset))) {
    console.error("crates/report/assets/page.html differs from the page that web/ builds: run `npm run asset` in web/ and commit it");
    process.exit(1);
  }
  console.log("crates/report/assets/page.html equals the page that web/ builds");
} else {
  mkdirSync(new URL(".", asset), { recursive: true });
  copyFileSync(built, asset);
  console.log(`crates/report/assets/page.html: ${readFileSync(asset).length} bytes`);
}
