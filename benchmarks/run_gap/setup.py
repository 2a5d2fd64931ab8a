import paddle

paddle.enable_compat()
from setuptools import setup
from torch.utils import cpp_extension

setup(
    name="seqlab",
    packages=["seqlab"],
    ext_modules=[cpp_extension.CppExtension(name="seqlab._C", sources=["csrc/ops.cc"])],
    cmdclass={"build_ext": cpp_extension.BuildExtension},
)
