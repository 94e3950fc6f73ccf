import { defineConfig } from "vite";
import { viteSingleFile } from "vite-plugin-singlefile";

// One file that opens from disk, with all parts inlined and no requests.
export default defineConfig({
  plugins: [viteSingleFile({ removeViteModuleLoader: true })],
  build: { target: "es2022", modulePreload: false, license: false, reportCompressedSize: false },
});
