#!/usr/bin/env python3
"""What a container of the Indexed Job gets, as words for bash: the Job of deploy/kubernetes/job, the settings beside it, and
the image's own ones in the Containerfile.   eval "$(pod_settings.py)"   sets

  command     the entry point, with its arguments
  variables   NAME=VALUE of the image and of the Job
  user group folder      by which and where it runs
  places      where volumes are mounted, each with its volume: shared, options, or the bytes of a limited one
  read_only   1 where the rest of the file system is read-only
"""
import pathlib
import shlex

import containerfile
import yaml

JOB = pathlib.Path(__file__).resolve().parents[2] / "deploy/kubernetes/job"
UNITS = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30}


def bytes_of(quantity):
    return int(quantity[:-2]) * UNITS[quantity[-2:]]


def volume(each):
    return bytes_of(each["emptyDir"]["sizeLimit"]) if "emptyDir" in each else each["name"]


def settings():
    pod = yaml.safe_load((JOB / "job.yaml").read_text())["spec"]["template"]["spec"]
    container, = pod["containers"]
    volumes = {each["name"]: volume(each) for each in pod["volumes"]}
    generated = yaml.safe_load((JOB / "kustomization.yaml").read_text())["configMapGenerator"]
    literals = [word for each in generated for word in each.get("literals", ())]
    image = containerfile.read(containerfile.PATH.read_text())[0][-1]
    return {"command": container["command"],
            "variables": [f"{name}={value}" for name, value in image.pairs("ENV").items()] + literals,
            "user": pod["securityContext"]["runAsUser"], "group": pod["securityContext"]["runAsGroup"],
            "folder": image.last("WORKDIR"),
            "places": [f"{mount['mountPath']}={volumes[mount['name']]}" for mount in container["volumeMounts"]],
            "read_only": int(container["securityContext"]["readOnlyRootFilesystem"])}


def main():
    for name, value in settings().items():
        print(f"{name}=({shlex.join(value)})" if isinstance(value, list) else f"{name}={shlex.quote(str(value))}")


if __name__ == "__main__":
    main()
