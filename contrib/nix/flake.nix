# SPDX-License-Identifier: GPL-2.0-only
# Builds scx_roost with nixpkgs:
#   nix build path:contrib/nix --override-input scx_roost path:.
# from the top of the sources. Needs a nixpkgs whose Rust is at least rust-version of Cargo.toml.
{
  description = "A sched_ext scheduler: the kernel's own wakeup placement, rebuilt in BPF";

  inputs = {
    nixpkgs.url = "nixpkgs/nixos-unstable";
    scx_roost = {
      url = "path:../..";
      flake = false;
    };
  };

  outputs =
    { nixpkgs, scx_roost, ... }:
    let
      system = "x86_64-linux";
      pkgs = nixpkgs.legacyPackages.${system};
      cargo = fromTOML (builtins.readFile "${scx_roost}/Cargo.toml");
      units = [
        "scx_roost"
        "scx_roost-export"
      ];
    in
    {
      packages.${system}.default = pkgs.rustPlatform.buildRustPackage {
        pname = "scx-roost";
        inherit (cargo.package) version;
        src = scx_roost;
        cargoLock.lockFile = "${scx_roost}/Cargo.lock";
        nativeBuildInputs = [
          pkgs.installShellFiles
          pkgs.pkg-config
          pkgs.rustPlatform.bindgenHook
        ];
        buildInputs = [
          pkgs.elfutils
          pkgs.zlib
        ];
        # The BPF half is built by the bare compiler: the options that harden C are not for it.
        env.BPF_CLANG = "${pkgs.llvmPackages.clang-unwrapped}/bin/clang";
        # The other tests need the repository.
        cargoTestFlags = [ "--lib" ];
        postInstall = ''
          for unit in ${toString units}; do
            substitute contrib/$unit.service $out/lib/systemd/system/$unit.service \
              --replace-quiet ExecStart=scx_roost ExecStart=$out/bin/scx_roost
          done
          install -Dm644 contrib/config.toml -t $out/share/doc/scx_roost
          install -Dm644 contrib/scx_roost.sysusers $out/lib/sysusers.d/scx_roost.conf
          $out/bin/scx_roost man man
          installManPage man/*.1
          for shell in bash zsh fish; do
            $out/bin/scx_roost completions $shell >scx_roost.$shell
          done
          installShellCompletion scx_roost.{bash,zsh,fish}
        '';
        preInstall = "mkdir -p $out/lib/systemd/system";
        meta = {
          inherit (cargo.package) description;
          license = pkgs.lib.licenses.gpl2Only;
          mainProgram = "scx_roost";
          platforms = [ system ];
        };
      };
    };
}
